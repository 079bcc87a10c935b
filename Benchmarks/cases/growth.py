"""2 What a refresh costs as the store grows, and ten million grants held for ten minutes."""

import shutil
import time

from harness import endpoint, grants, picture, report
from harness.daemon import Daemon, cached_megabytes, drop_file_cache, quantile

TITLE = "The cost as work grows: from ten thousand to ten million stored grants"
# Between two refreshes of a grant whose access tokens live an hour; what really comes due is counted.
PERIOD = 3000


def measure(scale, folder):
    sizes = scale.pick([10_000, 100_000, 1_000_000, 10_000_000], [500, 2_000])
    sample = scale.pick(60_000, 300)
    rows, held = [], None
    for size in sizes:
        place = folder / str(size)
        place.mkdir()
        with endpoint.Endpoint(place / "endpoint") as site:
            store = grants.Grants(place / "grants")
            is_last = size == sizes[-1]
            started = time.time()
            # The largest must be there before its first grant is due; the others have been standing still.
            lead = size / 25_000 + 2 if is_last else 0
            outage = 0 if is_last else min(PERIOD + 600, PERIOD * sample / size)
            store.fill(size, start=started + lead, outage=int(outage))
            scale.say(f"{size:,} grants written in {time.time() - started:.0f} s")
            site.start_log()
            if is_last:
                time.sleep(max(0, started + lead - time.time()))
                held = hold(scale, store, site, place, seconds=scale.pick(600, 5))
                time.sleep(PERIOD * sample / size)
            row = catch_up(store, site, place, min(size, sample) if not is_last else sample)
            row["claims"] = store.exercise(scale.pick(20_000, 100))
            scale.say(f"{size:,} grants: {row}")
            rows.append({"grants": size, **row})
        shutil.rmtree(place)
    return {"sample": sample, "rows": rows, "held": held}
