import Clocks
import Store
import WorkerConfiguration

/// The concerns of a report: conditions that a person should look at.
extension StatusReport {
    /// A grant that is due for longer is late: scan, back-off and pace normally keep it well below.
    static let tolerableLateness: Duration = .seconds(60)

    /// The same limit without a worker, because cron may start a pass every few minutes.
    static let tolerableLatenessWithoutWorker: Duration = .seconds(600)

    /// One sentence for each concern; empty if all is well.
    var concerns: [String] {
        workerConcerns + clients.flatMap(\.concerns) + keyConcerns + grantConcerns
            + spilledFiles.map { $0.sentence(at: at) }
    }

    var isWell: Bool { concerns.isEmpty }

    /// The time that the oldest due grant has waited.
    var lateness: Duration? {
        statistics.oldestDueAt.map { max(.zero, at - $0) }
    }

    private var workerConcerns: [String] {
        guard workers.isEmpty, let lateness, lateness > Self.tolerableLatenessWithoutWorker else { return [] }
        let waited = lateness.inTwoUnits
        return ["no worker is running, and the oldest of \(statistics.due) due grants has waited \(waited): start it"]
    }

    private var keyConcerns: [String] {
        guard let keyRing else { return ["the key ring cannot be read: run: refresh-worker doctor"] }
        let missing = keyRing.missingKeys(of: keysInUse).map { id in
            "\(KeyListing.tokens(keysInUse[id] ?? 0)) sealed with key \(id), which the ring lacks, cannot be opened"
        }
        guard let pending = keyRing.firstPending else { return missing }
        return missing + ["the rotation to key \(pending) is not finished: run: refresh-worker keys rotate"]
    }

    private var grantConcerns: [String] {
        var concerns: [String] = []
        if !workers.isEmpty, let lateness, lateness > Self.tolerableLateness {
            concerns.append("the oldest due grant has waited \(lateness.inTwoUnits)")
        }
        if statistics.refreshTokensEnding > 0 {
            concerns.append("refresh tokens that end within three days: \(statistics.refreshTokensEnding)")
        }
        if statistics.idle > 0 {
            let deadline = "which Google forgets at six"
            concerns.append("connected grants without a refresh for five months, \(deadline): \(statistics.idle)")
        }
        return concerns
    }
}

extension StatusReport.Client {
    fileprivate var concerns: [String] {
        var concerns: [String] = []
        let name = DisplayedText(id)
        if breaker != .closed {
            concerns.append("nothing is sent for client \(name): \(breakerReason ?? "unknown")")
        }
        if isWave {
            concerns.append("a wave of invalid_grant for client \(name): each is confirmed before it is acted on")
        }
        if let pause {
            concerns.append("the endpoint asked client \(name) to pause for \(pause.inTwoUnits) more")
        } else if isSlowed {
            concerns.append("the endpoint throttled client \(name), which recovers by itself")
        }
        return concerns
    }
}
