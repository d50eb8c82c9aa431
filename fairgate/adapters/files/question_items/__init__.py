"""Files of question items: BBQ as published, KoBBQ, CBBQ, JBBQ and a neutral format."""
