import Synchronization

/// The configuration that a running worker uses: the one of its start, with the settings that reloads have changed.
package final class CurrentConfiguration: Sendable {
    private let state: Mutex<Configuration>

    package init(_ configuration: Configuration) {
        state = Mutex(configuration)
    }

    package var value: Configuration { state.withLock { $0 } }

    package func replace(with configuration: Configuration) {
        state.withLock { $0 = configuration }
    }
}
