"""Ways to ask an application that answers by itself, and to read its replies."""
