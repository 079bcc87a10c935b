import Dispatch

/// A serial queue for calls that can wait for a disk, a pipe or a person, so that they do not block other tasks.
final class BlockingCallQueue: Sendable {
    /// The queue for short calls on files and their locks.
    static let files = BlockingCallQueue(label: "refresh-worker.files")

    /// The queue for the program that prints the key ring, which can take half a minute.
    static let keyCommand = BlockingCallQueue(label: "refresh-worker.key-command")

    private let queue: DispatchQueue

    init(label: String) {
        queue = DispatchQueue(label: label)
    }

    /// Runs calls one at a time, in the order of the calls to this function.
    func run<Answer: Sendable>(_ body: @escaping @Sendable () throws -> Answer) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try body() }) }
        }
    }

    /// The same for a call that cannot fail.
    func run<Answer: Sendable>(_ body: @escaping @Sendable () -> Answer) async -> Answer {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: body()) }
        }
    }
}
