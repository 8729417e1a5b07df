"""What a Pod asks for.

* `intent`: the definition and version that its images name, and which container stands for which device.
* `renewal`: which lablet of a warm pool takes up new content next.
* `inputs`: the annotations by which users direct the lablet; `message`: what an instructor tells the learner.
"""
