"""The topic of a class's page, whatever is in its filter."""

from urllib.parse import urlencode

from vkprovider.portal.pure.classes import wish_of
from vkprovider.portal.web.classes.classrooms import one_name, topic_of
from vkprovider.portal.web.live.streams import wanted


def test_a_page_with_a_long_filter_is_followed_and_nine_of_them_fit_one_request_line() -> None:
    wish = wish_of({"q": "😀" * 100, "reason": "😀" * 100, "sort": "started", "falling": "1", "state": "needs help"})
    topics = [f"class:{str(at) * 63}{topic_of('', wish)}" for at in range(9)]
    found = wanted(topics, ["v" * 22] * 9, lambda _, name: one_name(name))
    assert [each.topic for each in found] == topics
    asked = urlencode([(name, value) for topic in topics for name, value in (("topic", topic), ("version", "v" * 22))])
    assert len(f"GET /user/somebody/live?{asked} HTTP/1.1") < 8190
