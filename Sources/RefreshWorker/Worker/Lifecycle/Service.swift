/// A part of a worker that runs until its task is cancelled.
typealias Service = @Sendable () async -> Void
