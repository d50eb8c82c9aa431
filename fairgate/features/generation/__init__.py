"""Source test cases: attributes, templates, and what is made of them."""
