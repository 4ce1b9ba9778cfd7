// The overlay under a neutral name: `import OpenBNNS` gives what `import Accelerate` does.

@_exported import Accelerate
