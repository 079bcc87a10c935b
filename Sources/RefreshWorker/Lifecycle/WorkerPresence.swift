import Clocks
import Observability
import RefreshEngine
import Secrets
import Store

/// Tells the other workers, through the store, that this process lives and which keys it holds.
///
/// Every process that seals tokens reports: a key is put to use only when all of them hold it, and retired only when none
/// seals with it.
struct WorkerPresence: Sendable {
    /// How often to report; a report counts for several times as long.
    static let interval: Duration = .seconds(5)

    let store: any GrantStore
    let ring: LiveKeyRing
    let workerName: String
    let diagnostics: DiagnosticLog
    /// Raises an alarm for each incident of the store; `nil` in commands, which leave that to the daemon.
    var log: EngineLog?
    /// Takes its share of the work; `nil` in processes that do not ask Google for what is due.
    var engine: RefreshEngine?

    /// Reads the ring again and reports.
    ///
    /// A ring that cannot be read stays as it was, and the report says so by its keys.
    func report() async throws {
        do {
            try ring.reload()
        } catch {
            diagnostics.warning("the key ring cannot be read again; the keys in memory stay", ["error": "\(error)"])
        }
        let keys = ring.current
        let reports = try await store.report(
            WorkerReport(
                id: workerName,
                keyIDs: keys.keyIDs,
                sealingKeyID: keys.sealingKeyID,
                isRefreshing: engine != nil
            )
        )
        await engine?.takeShare(among: reports)
    }

    /// Reports until cancelled, and calls `onTurn` after each try.
    ///
    /// It is what asks the database most steadily, so it tells when that is lost and when it is there again.
    func run(onTurn: @Sendable () -> Void) async {
        var standing = DatabaseStanding()
        await Metronome.beat(every: Self.interval) {
            do {
                try await report()
                if standing.succeeded() { diagnostics.notice("the database can be used again") }
            } catch {
                engine?.note(error, waiting: 0)
                let isNews = standing.failed(with: (error as? StoreError)?.code)
                if isNews {
                    diagnostics.error("the database cannot be used", ["error": "\(error)"])
                } else {
                    diagnostics.debug("presence", ["error": "\(error)"])
                }
            }
            raiseIncidents()
            onTurn()
        }
    }

    /// Raises an alarm for what happened to the database since the last call.
    private func raiseIncidents() {
        guard let log else { return }
        for incident in store.takeIncidents() { log.incident(incident) }
    }

    func leave() async {
        do {
            try await store.forgetWorker(workerName)
        } catch {
            diagnostics.debug("presence", ["error": "\(error)"])
        }
    }
}

/// Does something again and again until its task is cancelled.
enum Metronome {
    static func beat(every interval: Duration, immediately: Bool = true, _ action: () async -> Void) async {
        if immediately { await action() }
        while !Task.isCancelled {
            do {
                try await Task.sleep(for: interval)
            } catch {
                return
            }
            await action()
        }
    }
}
