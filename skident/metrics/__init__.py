"""skident.metrics"""
