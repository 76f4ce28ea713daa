"""skident.datasets"""
