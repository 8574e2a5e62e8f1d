from __future__ import annotations

import asyncio

from sluicegate.dashboard.watching import News


async def heard(news: News, last_id: str | None, most: int) -> list[tuple[str, str]]:
    found = []
    async for event in news.follow(last_id):
        found.append((event.kind, event.text))
        if len(found) == most:
            break
    return found


def test_who_was_away_hears_what_was_missed_once() -> None:
    async def story() -> None:
        news = News()
        follower = news.follow(None)
        begun = await anext(follower)
        for number in range(3):
            news.publish("tick", str(number))
        first = await anext(follower)
        assert (begun.kind, first.text) == ("refetch", "0")
        assert await heard(news, first.id, 2) == [("tick", "1"), ("tick", "2")]

    asyncio.run(story())


def test_who_was_away_too_long_is_told_to_ask_anew() -> None:
    async def story() -> None:
        news = News()
        begun = await anext(news.follow(None))
        for number in range(500):
            news.publish("tick", str(number))
        assert await heard(news, begun.id, 1) == [("refetch", "{}")]

    asyncio.run(story())


def test_numbers_of_another_process_mean_nothing_here() -> None:
    async def story() -> None:
        for strange in ("deadbeef-3", "", "x", "-1"):
            assert await heard(News(), strange, 1) == [("refetch", "{}")]

    asyncio.run(story())


def test_listeners_are_let_go_when_the_server_ends() -> None:
    async def story() -> None:
        news = News()
        listening = asyncio.create_task(heard(news, None, 9))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        news.close()
        assert await asyncio.wait_for(listening, 5) == [("refetch", "{}")]

    asyncio.run(story())


def test_a_listener_still_busy_with_an_event_is_let_go_too() -> None:
    async def story() -> None:
        news = News()
        follower = news.follow(None)
        await anext(follower)
        news.close()
        assert await asyncio.wait_for(anext(follower, None), 5) is None

    asyncio.run(story())
