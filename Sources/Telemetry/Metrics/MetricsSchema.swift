/// The schema of the metrics log: docs/metrics-log.md in code.
package enum MetricsSchema {
    /// The fields that every line has.
    package static let common: [MetricsField] = [
        .always("time", .string, "the time of the line: UTC with milliseconds, as in `2026-11-21T03:17:39.123Z`"),
        .always("event", .string, "the name of one of the events below"),
        .always("worker", .string, "the name of the worker that wrote the line"),
    ]

    /// The events, in the order of the document.
    package static let events: [any MetricsEvent.Type] = [
        RefreshEvent.self, VendEvent.self, LookupEvent.self, StateEvent.self, BreakerEvent.self, PacerEvent.self,
        AlarmEvent.self, SecurityEventEvent.self, SummaryEvent.self, PassEvent.self, StartedEvent.self,
        StoppingEvent.self,
        StoppedEvent.self, ClockStepEvent.self, NoticeEvent.self,
    ]
}
