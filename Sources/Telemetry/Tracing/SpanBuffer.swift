package import Base
private import Synchronization

/// The spans that wait to be sent.
///
/// There is one for a request only if its caller records spans too.
///
///     let span = spans.begin("vend", .server)
///     …
///     spans.end(span, attributes: [Span.Attribute("refresh_worker.outcome", "served")])
package final class SpanBuffer: Sendable {
    /// So many wait at most, as in OpenTelemetry's own libraries. Further ones are dropped and counted.
    package static let maximumSpans = 2048

    private struct State {
        var spans: [Span] = []
    }

    private let state = Mutex(State())
    private let counters: EventCounters
    private let time: any TimeSource
    private let random: any RandomSource

    package init(counters: EventCounters, time: any TimeSource, random: any RandomSource) {
        self.counters = counters
        self.time = time
        self.random = random
    }

    /// A span that has not ended.
    package struct Open: Sendable {
        fileprivate let span: Span
        fileprivate let beganAt: BootInstant

        /// The context of what is done within it.
        package var context: TraceContext { span.context }
    }

    /// Begins a span below that of the caller, or returns `nil` if the caller does not record its own.
    package func begin(_ name: String, _ kind: Span.Kind) -> Open? {
        guard let caller = TraceContext.current, caller.isSampled else { return nil }
        let span = Span(
            traceID: caller.traceID,
            id: SpanID(random: random),
            parentID: caller.spanID,
            name: name,
            kind: kind,
            start: time.now
        )
        return Open(span: span, beganAt: time.sinceBoot)
    }

    /// Keeps a span, which has ended now.
    package func end(_ open: Open?, attributes: [Span.Attribute], hasFailed: Bool = false) {
        guard let open else { return }
        var span = open.span
        span.duration = time.sinceBoot - open.beganAt
        span.attributes = attributes
        span.hasFailed = hasFailed
        let isKept = state.withLock { state in
            guard state.spans.count < Self.maximumSpans else { return false }
            state.spans.append(span)
            return true
        }
        if !isKept { counters.recordDropped(1, of: .traces, because: .overflow) }
    }

    /// Returns the oldest spans, which are then no longer here.
    package func take(atMost limit: Int) -> [Span] {
        state.withLock { state in
            let taken = Array(state.spans.prefix(limit))
            state.spans.removeFirst(taken.count)
            return taken
        }
    }
}
