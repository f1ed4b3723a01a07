"""Pure mathematics: the objectives, as functions of group statistics."""
