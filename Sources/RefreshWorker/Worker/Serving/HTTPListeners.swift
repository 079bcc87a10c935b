import Base
import HTTPServer
import Routes
import Scheduler

/// The daemon's listeners: the app's routes on one, tokens and probes on the other.
struct HTTPListeners: Sendable {
    /// The limit of concurrent requests to Google for callers of the public listener.
    static let maximumLookups = 128
    /// The time since the last iteration of a loop after which the process counts as unhealthy.
    static let maximumIteration: Duration = .seconds(60)

    let phase = Shared(ServingPhase.starting)
    /// `nil` if the app's routes are not served.
    let publicListener: PublicListener?
    /// `nil` if no token is vended, and nothing is shown.
    let internalListener: InternalListener?

    /// Reads the dependencies and starts listening.
    ///
    /// Until ``phase`` changes, `/readyz` answers that it is not ready.
    init(_ worker: Worker) throws {
        let context = worker.context
        let configuration = context.configuration
        let inherited = try HTTPServer.inheritedSockets(
            environment: context.inputs.environment,
            processID: ProcessSetup.id
        )
        let tokens = try context.openAppTokens(store: worker.store)
        // Everything that can be refused comes before the first server starts, because that would answer for a moment.
        var preparedPublic: PublicListener.Prepared?
        if let location = configuration.publicListener {
            preparedPublic = try PublicListener.Prepared(
                at: location,
                of: worker,
                tokens: tokens,
                phase: phase,
                inherited: inherited
            )
        }
        var preparedInternal: InternalListener.Prepared?
        if !configuration.internalListeners.isEmpty {
            preparedInternal = try InternalListener.Prepared(
                at: configuration.internalListeners,
                of: worker,
                inherited: inherited
            )
        }
        internalListener = try preparedInternal?.start(worker, tokens: tokens, phase: phase)
        publicListener = try preparedPublic?.start(worker)
    }

    /// Announces that requests should go elsewhere, and lets the app's requests in progress complete.
    ///
    /// Returns the number of grants whose tokens could not be stored.
    func drain(within grace: Duration) async -> UnstoredResults {
        phase.value = .draining
        return await publicListener?.drain(within: grace) ?? .none
    }

    /// Ends the internal listener, which is the last because it reports the draining until then.
    func stop(within grace: Duration) async {
        await internalListener?.stop(within: grace)
    }
}
