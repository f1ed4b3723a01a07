"""Does ordinary PCA represent women and men differently?

The bundled German credit data, 1000 applicants.
"""

import matplotlib.pyplot as plt
plt.plot([1,2],[1,3],label="a"); plt.legend()

# %%
# Some text.
print("hello")
