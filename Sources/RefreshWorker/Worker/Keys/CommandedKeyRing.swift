import Base
import Crypto
import Synchronization

/// The key ring that `--key-command` prints, in memory.
///
/// A plain file is read every five seconds. The command is not run so often: it takes a second, and each run is a
/// request to a KMS.
final class CommandedKeyRing: Sendable {
    /// The interval at which the file is looked at.
    static let interval = WorkerHeartbeat.interval

    private struct State {
        /// What the last successful run printed.
        var ring: KeyRing?
        /// Why the last run failed.
        var error: FileError?
        var schedule = KeyCommandSchedule()
    }

    let commands: KeyCommands
    private let path: String
    private let time: any TimeSource
    private let state = Mutex(State())

    init(path: String, commands: KeyCommands, time: any TimeSource) {
        self.path = path
        self.commands = commands
        self.time = time
    }

    /// Returns what the command printed last, or throws why its last run failed.
    ///
    /// As long as no run has succeeded, it runs the command, and blocks.
    func latest() throws(FileError) -> KeyRing {
        let (ring, error) = state.withLock { ($0.ring, $0.error) }
        guard let ring else { return try run() }
        if let error { throw error }
        return ring
    }

    /// Lets the next ``update()`` run the command, for a reload.
    func request() { state.withLock { $0.schedule.request() } }

    /// Runs the command if that is due, and blocks then. ``latest()`` has the outcome.
    func update() {
        let version = KeyCommandSchedule.FileVersion(of: path)
        let now = time.sinceBoot
        guard state.withLock({ $0.schedule.isDue(for: version, at: now) }) else { return }
        _ = Result { () throws(FileError) in try run() }
    }

    /// Runs the command whenever that is due, until cancelled. While `ring` stands by or has refused what was printed, it
    /// is due again and again.
    func updateRepeatedly(for ring: ReloadableKeyRing) async {
        await time.repeat(every: Self.interval) {
            let isUnfit = ring.standbyReason != nil || ring.rejection != nil
            self.state.withLock { $0.schedule.observe(isUnfit: isUnfit) }
            await BlockingCallQueue.keyCommand.run { self.update() }
        }
    }

    private func run() throws(FileError) -> KeyRing {
        // Before the run: a file that is replaced meanwhile is another version.
        let version = KeyCommandSchedule.FileVersion(of: path)
        state.withLock { $0.schedule.began(with: version) }
        do throws(FileError) {
            let ring = try KeyRingFile.load(path: path, wrapping: commands)
            let now = time.sinceBoot
            state.withLock { state in
                state.ring = ring
                state.error = nil
                state.schedule.ended(hasFailed: false, at: now)
            }
            return ring
        } catch {
            let now = time.sinceBoot
            state.withLock { state in
                state.error = error
                state.schedule.ended(hasFailed: true, at: now)
            }
            throw error
        }
    }
}
