package import Base
internal import HTTPClient
package import Telemetry

/// Sends the requests of one signal to the collector, one after another, and counts what does not arrive.
///
/// A request that might succeed later is sent again until its time is up. Nothing is kept beyond that: the next
/// metrics have the counts of the former, and spans are not worth the memory.
package actor TelemetrySender {
    static let firstWait: Duration = .seconds(1)
    static let maximumWait: Duration = .seconds(30)

    private let signal: TelemetrySignal
    private let collector: any Collector
    private let counters: EventCounters
    private let diagnostics: DiagnosticLog
    private let time: any TimeSource
    private let random: any RandomSource

    /// Nothing is sent before this, because the collector has asked for a pause.
    private var pauseEnd: BootInstant?
    private var isFailing = false

    package init(
        of signal: TelemetrySignal,
        to collector: any Collector,
        counters: EventCounters,
        diagnostics: DiagnosticLog,
        time: any TimeSource,
        random: any RandomSource
    ) {
        self.signal = signal
        self.collector = collector
        self.counters = counters
        self.diagnostics = diagnostics
        self.time = time
        self.random = random
    }

    /// Sends a request, again if necessary, for as long as this span.
    package func send(_ encoded: EncodedTelemetry, within span: Duration) async {
        count(encoded.dropped, as: .overflow)
        guard encoded.items > 0 else { return }
        let end = time.sinceBoot + span
        var attempts = 0
        while !Task.isCancelled {
            let now = time.sinceBoot
            let nextAt = max(now, pauseEnd ?? now)
            guard nextAt < end else { break }
            do {
                if nextAt > now { try await time.sleep(for: nextAt - now) }
            } catch {
                break
            }
            let attempt = await post(encoded.body)
            switch attempt.verdict {
            case .accepted(let rejected):
                pauseEnd = nil
                count(min(rejected, encoded.items), as: .refused)
                return reportSuccess()
            case .refused:
                pauseEnd = nil
                count(encoded.items, as: .refused)
                return reportFailure(attempt.problem)
            case .retry(let wait):
                attempts += 1
                pauseEnd = time.sinceBoot + (wait ?? backOff(after: attempts))
                reportFailure(attempt.problem)
            }
        }
        count(encoded.items, as: .failed)
    }

    private struct Attempt {
        let verdict: CollectorVerdict
        /// For the log: neither a header nor a text of the collector.
        let problem: String
    }

    private func post(_ body: [UInt8]) async -> Attempt {
        do {
            let response = try await collector.post(body)
            return Attempt(verdict: CollectorVerdict(response), problem: "status \(response.status)")
        } catch {
            return Attempt(verdict: CollectorVerdict(error), problem: error.description)
        }
    }

    /// Doubles with each attempt, of which a random half is waited for, so that many workers do not return at once.
    private func backOff(after attempts: Int) -> Duration {
        let doubled = Self.firstWait * (1 << min(attempts - 1, 10))
        return min(doubled, Self.maximumWait) * (0.5 + random.nextUnit() / 2)
    }

    private func count(_ items: Int, as reason: TelemetryDrop.Reason) {
        guard items > 0 else { return }
        counters.recordDropped(items, of: signal, because: reason)
    }

    /// Logs the first failure and the next success, not each attempt of a long outage.
    private func reportFailure(_ problem: String) {
        guard !isFailing else { return }
        isFailing = true
        diagnostics.warning(
            "telemetry does not reach the collector; refreshes and services are not affected",
            ["signal": signal.rawValue, "error": problem]
        )
    }

    private func reportSuccess() {
        guard isFailing else { return }
        isFailing = false
        diagnostics.notice("telemetry reaches the collector again", ["signal": signal.rawValue])
    }
}
