"""What a release needs beside the package: metadata, container recipes, and descriptors made from them."""
