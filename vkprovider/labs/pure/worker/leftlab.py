"""What is said of a lab on a worker that no claim names, and how it is removed."""

from vkprovider.lablet import names


def unclaimed_lab(url: str, lab_id: str, title: str) -> str:
    """Return the note of the Event about a lab with our mark that no claim names.

    Args:
        url: The CMLWorker's; "" if it has none.
        lab_id: The lab's id.
        title: The lab's title.
    """
    page = names.lab_url(url, lab_id)
    return (
        f"lab {title} ({lab_id}) carries our mark but no claim names it, as a copy that somebody saved; it is left "
        f"alone, and its ports are given to no lablet. If nobody needs it, delete it on CML's page {page}".rstrip()
        + (f", or with: {removal(url, lab_id)}" if page else "")
    )


def removal(url: str, lab_id: str) -> str:
    """Return the shell command that stops, wipes and deletes a lab; who runs it has CML's token in TOKEN.

    >>> removal("https://cml-1.example.com", "6f2c").partition("; H=")[0]
    'C=https://cml-1.example.com/api/v0; L=$C/labs/6f2c'
    """
    base = names.lab_url(url, lab_id).removesuffix(f"/lab/{lab_id}")
    curl, wait = 'curl -H "$H"', "--retry 60 --retry-delay 1 --retry-all-errors"
    return (
        f'C={base}/api/v0; L=$C/labs/{lab_id}; H="Authorization: Bearer $TOKEN"; {curl} -X PUT $L/stop; '
        f"{curl} -f {wait} -X PUT $L/wipe; {curl} -X DELETE $L (TOKEN: what POST $C/authenticate answers)"
    )
