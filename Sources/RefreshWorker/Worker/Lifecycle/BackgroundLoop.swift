/// A part of a worker that runs until its task is cancelled.
typealias BackgroundLoop = @Sendable () async -> Void
