"""What a Pod asks for.

* `intent`: the definition and version that its images name, and which container stands for which device.
* `inputs`: the annotations by which users direct the lablet.
"""
