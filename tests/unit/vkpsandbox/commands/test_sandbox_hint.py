"""What `vkprovider sandbox up --no-provider` says about running the provider."""

from pathlib import Path

from vkpsandbox.commands.sandbox import provider_hint


def test_the_command_names_a_kubeconfig_that_exists(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "provider.kubeconfig"
    assert str(kubeconfig) not in provider_hint(kubeconfig)
    assert "docs/install.md" in provider_hint(kubeconfig)
    kubeconfig.touch()
    assert f"KUBECONFIG={kubeconfig} vkprovider run" in provider_hint(kubeconfig)
