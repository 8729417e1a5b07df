"""Bytes of the kubelet API's streams and what they mean. Pure."""
