import Base
import Synchronization

@testable import Scheduler

/// A spill in memory, with a reserve that can be freed a given number of times.
///
/// If it has a gate, it saves once the gate is open.
final class MemorySpill: ResultSpill {
    private let state: Mutex<(saved: [RefreshResult], reserves: Int)>
    private let error: FileError?
    private let gate: Gate?

    init(reserves: Int = 0, error: FileError? = nil, gate: Gate? = nil) {
        state = Mutex(([], reserves))
        self.error = error
        self.gate = gate
    }

    var saved: [RefreshResult] { state.withLock { $0.saved } }
    var reserves: Int { state.withLock { $0.reserves } }

    func save(_ results: [RefreshResult]) async throws {
        await gate?.pass()
        if let error { throw error }
        state.withLock { $0.saved += results }
    }

    func freeReserve() async -> Bool {
        state.withLock { state in
            guard state.reserves > 0 else { return false }
            state.reserves -= 1
            return true
        }
    }
}
