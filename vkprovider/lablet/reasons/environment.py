"""Reasons of Events about a Pod's environment variables, in the words of virtual-kubelet."""

from typing import Final

from vkprovider.platform.reasons import Reasons

_CREATE: Final = "Create it in the Pod's namespace; the lablet then continues by itself."
_BIND: Final = "Bind ClusterRole vkprovider-parameter-reader in the Pod's namespace, with the command of the message."


class EnvironmentReason(Reasons):
    """Events about references of environment variables; while a mandatory one is missing no lab is imported."""

    MANDATORY_CONFIG_MAP_NOT_FOUND = (
        "MandatoryConfigMapNotFound",
        "A ConfigMap that a variable needs does not exist; nothing is imported.",
        _CREATE,
    )
    MANDATORY_CONFIG_MAP_KEY_NOT_FOUND = (
        "MandatoryConfigMapKeyNotFound",
        "A ConfigMap lacks the key that a variable needs; nothing is imported.",
        "Add the key; the lablet then continues by itself.",
    )
    FAILED_TO_READ_MANDATORY_CONFIG_MAP = (
        "FailedToReadMandatoryConfigMap",
        "A ConfigMap that a variable needs may not be read, or cannot be used; nothing is imported.",
        _BIND,
    )
    MANDATORY_SECRET_NOT_FOUND = (
        "MandatorySecretNotFound",
        "A Secret that a variable needs does not exist; nothing is imported.",
        _CREATE,
    )
    MANDATORY_SECRET_KEY_NOT_FOUND = (
        "MandatorySecretKeyNotFound",
        "A Secret lacks the key that a variable needs; nothing is imported.",
        "Add the key; the lablet then continues by itself.",
    )
    FAILED_TO_READ_MANDATORY_SECRET = (
        "FailedToReadMandatorySecret",
        "A Secret that a variable needs may not be read, or cannot be used; nothing is imported.",
        _BIND,
    )
    OPTIONAL_CONFIG_MAP_NOT_FOUND = (
        "OptionalConfigMapNotFound",
        "An optional ConfigMap did not exist at the import of the lab; its variables have no value.",
    )
    OPTIONAL_CONFIG_MAP_KEY_NOT_FOUND = (
        "OptionalConfigMapKeyNotFound",
        "A ConfigMap lacked an optional key at the import of the lab; the variable has no value.",
    )
    FAILED_TO_READ_OPTIONAL_CONFIG_MAP = (
        "FailedToReadOptionalConfigMap",
        "An optional ConfigMap could not be used at the import of the lab; its variables have no value.",
        _BIND,
    )
    OPTIONAL_SECRET_NOT_FOUND = (
        "OptionalSecretNotFound",
        "An optional Secret did not exist at the import of the lab; its variables have no value.",
    )
    OPTIONAL_SECRET_KEY_NOT_FOUND = (
        "OptionalSecretKeyNotFound",
        "A Secret lacked an optional key at the import of the lab; the variable has no value.",
    )
    FAILED_TO_READ_OPTIONAL_SECRET = (
        "FailedToReadOptionalSecret",
        "An optional Secret could not be used at the import of the lab; its variables have no value.",
        _BIND,
    )
    INVALID_ENVIRONMENT_VARIABLE_NAMES = (
        "InvalidEnvironmentVariableNames",
        "Keys of a ConfigMap or Secret in `envFrom` cannot be names of variables, or have no text; they are left out.",
        "Rename the keys, or set the variables with `valueFrom`.",
    )
