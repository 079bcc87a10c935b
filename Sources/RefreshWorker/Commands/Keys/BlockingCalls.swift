private import Dispatch

/// Runs calls that block, such as those on files and their locks, off the threads that all tasks share.
enum BlockingCalls {
    private static let queue = DispatchQueue(label: "refresh-worker.blocking")

    static func run<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { caller in
            queue.async { caller.resume(with: Swift.Result(catching: body)) }
        }
    }
}
