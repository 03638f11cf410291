"""An offer is of the chip that its instance says: board, link and memory."""

from __future__ import annotations

import re

import pytest

from datahall.catalog import Catalog
from datahall.catalog.entries.offer import Offer

BOARDS = {"pcie": r"pcie", "nvl": r"nvl(?!ink)", "sxm": r"sxm"}
SIZE = re.compile(r"(?<![\dx])(40|80|141|180|192)\s?GB", re.IGNORECASE)


def said_boards(offer: Offer) -> set[str]:
    """What the name of an instance says of its board; an NVL is a PCIe card by its slot."""
    text = f"{offer.gpu} {offer.instance}".lower()
    found = {board for board, word in BOARDS.items() if re.search(word, text)}
    return {"nvl"} if "nvl" in found else found


def test_no_offer_is_of_another_board_than_its_instance_says(catalog: Catalog) -> None:
    told = [(offer, said_boards(offer)) for offer in catalog.offers() if offer.chip]
    wrong = [
        (offer.name, offer.chip)
        for offer, boards in told
        if boards
        and not any(board in offer.chip for board in boards)
        and re.search("pcie|nvl|sxm", offer.chip)
    ]
    assert wrong == []
    assert len([1 for _, boards in told if boards]) > 15  # of those that say it at all


def test_no_offer_is_of_another_memory_than_it_says(catalog: Catalog) -> None:
    wrong = []
    for offer in catalog.offers():
        said = SIZE.search(offer.gpu)
        of_chip = SIZE.search(offer.chip)
        if said and of_chip and said[1] != of_chip[1]:
            wrong.append((offer.name, offer.chip))
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("lambda-h100", "h100-sxm"),
        ("lambda-h100-pcie", "h100-pcie"),
        ("shadeform-h100", "h100-sxm"),
        ("shadeform-a100-80gb-pcie", "a100-pcie-80gb"),
        ("primeintellect-h100-pcie", "h100-pcie"),
        ("vast-a100", "a100-sxm-40gb"),
        ("vast-a100-80gb", "a100-sxm-80gb"),
        ("vast-h100-nvl", "h100-nvl"),
        ("fluidstack-h100-nvlink", "h100-pcie"),  # 252 vCPUs and 1,440 GB: a PCIe machine with bridges
    ],
)
def test_machines_that_a_provider_sells_on_two_boards_are_two_offers(
    catalog: Catalog, name: str, chip: str
) -> None:
    (offer,) = (one for one in catalog.offers() if one.name == name)
    assert offer.chip == chip


def test_lambda_sells_an_h100_pcie_for_less_than_an_sxm(catalog: Catalog) -> None:
    """$3.29 for the one instance of PCIe, $3.99 to $4.29 for those of 1, 2, 4 and 8 SXM: 4.29, 4.19, 4.09, 3.99."""
    price = {one.name: one.usd_per_hour for one in catalog.offers() if one.provider == "lambda"}
    assert price["lambda-h100-pcie"] == 3.29
    assert price["lambda-h100"] == pytest.approx((4.19 + 4.09) / 2)
