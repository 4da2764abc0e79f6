"""The search itself.

`successors` expands a block of states; `search` runs the blocks breadth first and numbers
what is new; `liveness` judges the finished graph; `lasso` builds the infinite run that shows
a violation of liveness.
"""
