/* Browsers refuse to start a Worker for a page that was opened from disk. The site's search runs in one, so that on
   such pages this class takes its place: the same script in a hidden frame, with messages passed as events. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.ready = new Promise(resolve => {
        const script = frame.contentDocument.createElement("script")
        script.src = address
        script.onload = resolve
        frame.contentDocument.body.append(script)
      })
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })))
    }
  }
}
