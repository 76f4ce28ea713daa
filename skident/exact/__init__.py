"""skident.exact"""
