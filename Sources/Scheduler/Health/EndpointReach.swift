import Base
import GoogleOAuth
import Storage

/// Whether this worker gets answers from the token endpoint, compared with the other workers.
///
/// If it gets none while others do, its own way to the endpoint is broken: its network, its DNS or its proxy. It then
/// leaves the grants to the others, and tries one from time to time.
///
///     A and B share the grants. At 0 s A's network breaks: its requests end without an answer.
///     At 6 s it has had no answer for five seconds, and B has had some in that time: A is cut off.
///     A reports that it does not refresh, makes its failed grants due, and B takes them.
///     A tries one grant every ten seconds. With the first answer it refreshes its share again.
struct EndpointReach: Sendable {
    /// The interval at which a worker that is cut off tries one grant.
    static let probeInterval: Duration = .seconds(10)
    /// Fewer unanswered requests in a row can be chance.
    private static let minimumUnanswered = 5
    /// In less time one broken connection can end many requests, and other workers can still get answers that were on
    /// their way when the endpoint failed for all.
    static let minimumSilence: Duration = .seconds(5)

    /// What is to be reported about the way to the endpoint.
    enum Change: Equatable {
        /// This worker is cut off now, and the grants of these clients had no answer.
        case lost(code: String, clients: [String])
        /// One more request had no answer.
        case stillLost(code: String)
        case restored
    }

    /// The unanswered requests since the last answer.
    private struct Silence {
        var since: Timestamp
        var last: Timestamp
        var count = 1
        var code: String
        var clients: Set<String>
    }

    private var silence: Silence?
    /// The number of unanswered requests when it was last reported that this worker is cut off.
    private var reportedCount = 0
    private(set) var isCutOff = false

    /// Records the end of a request of this worker.
    mutating func record(_ answer: RefreshResult.Answer, of client: String, at now: Timestamp) {
        switch answer {
        case .failed(.noAnswer(let code, _), _):
            guard var current = silence else {
                silence = Silence(since: now, last: now, code: code, clients: [client])
                return
            }
            current.last = now
            current.count += 1
            current.code = code
            current.clients.insert(client)
            silence = current
        case .failed(.notSent, _), .failed(.givenUp, _):
            // They show nothing about the way to the endpoint.
            return
        case .granted, .flawed, .failed, .withoutRefreshToken, .unreadable, .revocation:
            silence = nil
        }
    }

    /// Returns the time until a grant can be tried while this worker is cut off.
    func probeWait(at now: Timestamp) -> Duration {
        guard let silence else { return .zero }
        let wait = silence.last + Self.probeInterval - now
        return max(.zero, min(wait, Self.probeInterval))
    }

    /// Compares with the last success of any worker, and returns a change. A success of this worker itself has ended
    /// the silence, so a success during the silence is another worker's.
    mutating func update(lastSuccess: Timestamp?) -> Change? {
        guard let silence else {
            guard isCutOff else { return nil }
            isCutOff = false
            return .restored
        }
        if isCutOff {
            guard silence.count > reportedCount else { return nil }
            reportedCount = silence.count
            return .stillLost(code: silence.code)
        }
        let earliest = silence.since + Self.minimumSilence
        let isLong = silence.count >= Self.minimumUnanswered && silence.last >= earliest
        guard isLong, let lastSuccess, lastSuccess >= earliest else { return nil }
        isCutOff = true
        reportedCount = silence.count
        return .lost(code: silence.code, clients: silence.clients.sorted())
    }
}
