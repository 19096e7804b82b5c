"""Pictures and pages for people to look at: boxes, heat maps, explanations, curves, HTML."""
