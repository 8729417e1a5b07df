"""Names on the wire of user labs: the labels and annotations of their Namespaces, Pods and definitions."""

from typing import Final

from vkprovider.platform.wellknown import GROUP

COMPONENT_CODE: Final = "portal-code"

# User labs: one lablet Pod for one user, made by the portal. The Namespace of a user lab is its record.
PORTAL_PROGRAM: Final = "vkprovider-portal"
"""The program and its ServiceAccount; the value of `app.kubernetes.io/managed-by` of what it makes."""
LABEL_PORTAL: Final = f"{GROUP}/portal"
"""The mark by which the portal knows its own Namespaces and what is in them: the namespace of its installation."""
LABEL_USER: Final = f"{GROUP}/user"
"""The key of the user, from which names are made."""
LABEL_REQUEST: Final = f"{GROUP}/request"
"""A label of the Pod of a user lab: the id of the request that it was made for, or taken for if it was warm."""
LABEL_WARM: Final = f"{GROUP}/warm"
"""A label of a lab that was made before a user asked for it, and of its Pod: its family."""
LABEL_CLASS: Final = f"{GROUP}/class"
"""A label of a user lab: the namespace of the class whose instructors may end it."""
LABEL_FAMILY: Final = f"{GROUP}/family"
LABEL_SIZE: Final = f"{GROUP}/size"
"""Labels of a definition: it is one of a family, which differ by their size alone."""
ANNOTATION_SEALED: Final = f"{GROUP}/sealed"
"""An annotation of the Lease of a one-time code: what it stands for, encrypted."""
ANNOTATION_USER: Final = f"{GROUP}/user"
"""The exact name of the user."""
ANNOTATION_REQUEST: Final = f"{GROUP}/request"
ANNOTATION_ENDING: Final = f"{GROUP}/ending"
ANNOTATION_OPERATION: Final = f"{GROUP}/operation"
"""Annotations of the Namespace of a user lab in JSON, see `portal.pure.record`: what was asked for, that the lab is
to be deleted, and how the last of these ended."""
