import Base
import Crypto
import Glibc
import Scheduler
import Storage
import Synchronization

/// Writes results that the store does not accept into a file of this process, and keeps disk space reserved for it.
final class ResultSpillFile: ResultSpill {
    /// Enough for the results of all requests in flight.
    static let sizeForResults = 2 << 20
    /// The space that commits of those results need in addition.
    static let sizeForCommits = 2 << 20
    private static let lockAttempts = 20
    private static let pauseBetweenAttempts: Duration = .milliseconds(10)

    let location: SpillLocation
    private let database: DatabaseID
    private let worker: String
    private let vault: TokenVault
    private let queue = BlockingCallQueue(label: "refresh-worker.spill")
    private let current = Mutex<Current?>(nil)
    /// Closed before the file is opened, so that there are descriptors for it and its folder even if no other is free.
    private let spares: Mutex<[Int32]>

    private struct Current {
        let file: SpillFile
        var end = 0
        var count = 0
        /// `true` once the file durably has the name of a spill file.
        var isNamed = false
    }

    init(of database: DatabaseID, at location: SpillLocation, worker: String, vault: TokenVault) {
        self.database = database
        self.location = location
        self.worker = worker
        self.vault = vault
        spares = Mutex((0..<2).map { _ in unsafe open("/dev/null", O_RDONLY | O_CLOEXEC) })
    }

    deinit { closeSpares() }

    private func closeSpares() {
        spares.withLock { spares in
            for descriptor in spares { close(descriptor) }
            spares = []
        }
    }

    /// The file that holds results of this process, or `nil` if there are none.
    var path: String? { current.withLock { ($0?.isNamed ?? false) ? $0?.file.path : nil } }

    func save(_ results: [RefreshResult]) async throws {
        try await save(try results.compactMap { result in try result.sealed(with: vault) })
    }

    func save(_ tokens: [ExchangedTokens]) async throws {
        try await save(try tokens.map { try $0.spilled(with: vault) })
    }

    private func save(_ sealed: [SealedSecret]) async throws {
        try await queue.run { [self] in
            do {
                try write(sealed)
            } catch {
                throw FileError(
                    """
                    results that the database does not accept could not be written to a spill file either: \(error). Make \
                    room in \(location.folder), or make it writable for this user.
                    """
                )
            }
        }
    }

    /// Appends to the file of this process.
    ///
    /// The reserve, if there is one, becomes that file.
    ///
    /// After a failure the file stays open: the worker tries once more for its next batch. A batch that was not written
    /// is overwritten. One that was written stays, though it counts as lost: only the file's name was missing.
    private func write(_ results: [SealedSecret]) throws {
        try current.withLock { current in
            var state = try current ?? Current(file: begin())
            defer { current = state }
            let head = state.end == 0 ? SpillFormat.head(of: database) : []
            let added = head + SpillFormat.bytes(of: results)
            try state.file.write(added + SpillFormat.end(after: state.count + results.count), at: state.end)
            state.end += added.count
            state.count += results.count
            guard !state.isNamed else { return }
            try state.file.rename(to: location.unsaved(by: worker))
            state.isNamed = true
        }
    }

    /// Opens the file for writing.
    ///
    /// It is renamed to a spill file only after it is locked, because a recovery would treat an unlocked one as
    /// abandoned.
    private func begin() throws -> SpillFile {
        closeSpares()
        let file = try reserveIfFree() ?? newFile()
        try file.rename(to: location.writing(by: worker))
        return file
    }

    /// Returns the locked reserve, or `nil` if there is none, another process uses it, or it cannot be opened.
    ///
    /// A process that frees a part of it holds the lock for a moment. This waits for it, because a full disk might not
    /// have room for another file.
    private func reserveIfFree() -> SpillFile? {
        do throws(SystemCallError) {
            guard let file = try SpillFile.openIfThere(location.reserve) else { return nil }
            for _ in 0..<Self.lockAttempts where file.isInPlace {
                if try file.tryLock() { return file.isInPlace ? file : nil }
                SystemTime.blockThread(for: Self.pauseBetweenAttempts)
            }
            return nil
        } catch {
            return nil
        }
    }

    private func newFile() throws -> SpillFile {
        let path = location.newReserve(by: worker)
        // A file of an earlier try that failed.
        try SpillFile.remove(path)
        let file = try SpillFile.create(path)
        guard try file.tryLock() else { throw FileError("\(path) is in use by another process") }
        return file
    }

    /// Frees the part of the reserve that is kept for commits.
    func freeReserve() async -> Bool {
        guard location.isBesideDatabase else { return false }
        do {
            return try await queue.run { [self] in
                // Without the lock it could cut off results that another process is writing into the reserve.
                guard let file = reserveIfFree(), try file.size > Self.sizeForResults else { return false }
                try file.truncate(to: Self.sizeForResults)
                return true
            }
        } catch {
            return false
        }
    }

    /// Creates the reserve, or refills it, while there is room.
    func keepReserve() async throws {
        let (location, worker) = (location, worker)
        let size = Self.sizeForResults + (location.isBesideDatabase ? Self.sizeForCommits : 0)
        try await queue.run {
            if let file = try SpillFile.openIfThere(location.reserve) {
                if try file.size < size { try file.allocate(size) }
                return
            }
            let temporary = location.newReserve(by: worker)
            do {
                try SpillFile.create(temporary).allocate(size)
                _ = try SpillFile.rename(temporary, to: location.reserve)
            } catch {
                try SpillFile.remove(temporary)
                throw error
            }
        }
    }
}
