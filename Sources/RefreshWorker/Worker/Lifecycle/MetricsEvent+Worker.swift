import Telemetry

extension MetricsEvent {
    static func started(mode: String) -> MetricsEvent {
        MetricsEvent("started") { line in
            line.text("version", Version.current, "the worker's version")
            line.text("mode", mode, "`daemon` or `run_once`")
        }
    }

    /// The worker takes no new work, and finishes or releases its current work.
    static func stopping(reason: String, inFlight: Int) -> MetricsEvent {
        MetricsEvent("stopping") { line in
            line.text("reason", reason, "as in `SIGTERM`")
            line.number("in_flight", inFlight, "refreshes begun whose result is not stored yet")
        }
    }

    /// The worker's last line.
    static func stopped(uptime: Duration) -> MetricsEvent {
        MetricsEvent("stopped") { $0.milliseconds("uptime_ms", uptime, "since its start") }
    }
}
