"""skident.plotting"""
