private import Dispatch

/// A thread for calls that may wait for a disk, a pipe or a person, so that they never hold up the tasks of others.
final class BlockingQueue: Sendable {
    /// For calls on files and their locks, which end soon by themselves.
    static let files = BlockingQueue(label: "refresh-worker.files")

    private let queue: DispatchQueue

    init(label: String) {
        queue = DispatchQueue(label: label)
    }

    /// Runs calls one after the other, in the order in which they were asked for.
    func run<Answer: Sendable>(_ body: @escaping @Sendable () throws -> Answer) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try body() }) }
        }
    }
}
