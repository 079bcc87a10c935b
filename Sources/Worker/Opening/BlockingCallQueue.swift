private import Dispatch

/// A serial queue for calls that may wait for a disk, a pipe or a person, so that they do not block other tasks.
package final class BlockingCallQueue: Sendable {
    /// The queue for short calls on files and their locks.
    package static let files = BlockingCallQueue(label: "refresh-worker.files")

    private let queue: DispatchQueue

    package init(label: String) {
        queue = DispatchQueue(label: label)
    }

    /// Runs calls one at a time, in the order of the calls to this function.
    package func run<Answer: Sendable>(_ body: @escaping @Sendable () throws -> Answer) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try body() }) }
        }
    }
}
