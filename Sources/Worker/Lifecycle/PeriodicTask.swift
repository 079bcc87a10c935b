import Base

/// Repeats an action until its task is cancelled.
enum PeriodicTask {
    static func run(
        every interval: Duration,
        by time: any TimeSource,
        immediately: Bool = true,
        _ action: () async -> Void
    ) async {
        if immediately { await action() }
        while !Task.isCancelled {
            do {
                try await time.sleep(for: interval)
            } catch {
                return
            }
            await action()
        }
    }
}
