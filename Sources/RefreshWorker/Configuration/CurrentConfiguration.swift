import Synchronization

/// The configuration that a running worker uses: the one of its start, with the settings that reloads have changed.
final class CurrentConfiguration: Sendable {
    private let state: Mutex<Configuration>

    init(_ configuration: Configuration) {
        state = Mutex(configuration)
    }

    var value: Configuration { state.withLock { $0 } }

    func replace(with configuration: Configuration) {
        state.withLock { $0 = configuration }
    }
}
