import Base
import HTTPServer
import Routes
import Scheduler

/// The listener of the app's routes.
struct PublicListener: Sendable {
    let server: HTTPServer
    private let exchanges: CodeExchanges

    /// Lets the app's requests in progress complete.
    ///
    /// Returns the number of grants whose tokens could not be stored.
    func drain(within grace: Duration) async -> UnstoredResults {
        // The rest of the time is for the responses to requests whose exchange is cancelled.
        async let unstored = exchanges.stop(within: grace * 3 / 4)
        await server.stop(within: grace)
        return await unstored
    }
}

extension PublicListener {
    /// The listener with its socket open, before it answers.
    struct Prepared {
        private let exchanges: CodeExchanges
        private let router: Router
        private let configuration: HTTPServer.Configuration

        init(
            at location: ListenerLocation,
            of worker: Worker,
            tokens: AppTokens,
            phase: Shared<ServingPhase>,
            inherited: [String: Int32]
        ) throws {
            let context = worker.context
            exchanges = HTTPListeners.codeExchanges(worker)
            // A client of its own, so that refreshes never wait behind the look-ups of the tokens that public clients
            // send.
            let lookups = try context.openHTTP(maximumInFlight: HTTPListeners.maximumLookups)
            router = HTTPListeners.publicRouter(
                worker,
                lookups: lookups,
                tokens: tokens,
                exchanges: exchanges,
                monitoring: HTTPListeners.monitoring(worker, phase: phase)
            )
            let address = try location.address(
                mode: context.configuration.socketMode,
                inherited: inherited
            )
            guard address.reach != .unixSocket else {
                throw CommandError(
                    .configuration,
                    """
                    --listen: the socket from systemd is a unix socket, whose clients do not have an address for rate \
                    limits: use ListenStream=127.0.0.1:PORT in the socket's unit, and let the proxy connect to that
                    """
                )
            }
            configuration = try HTTPListeners.publicServerConfiguration(
                at: address,
                configuration: context.configuration
            )
        }

        func start(_ worker: Worker) throws -> PublicListener {
            let server = try HTTPListeners.startServer(
                configuration,
                router: router,
                refusalHandler: PublicRoutes.response,
                of: worker
            )
            return PublicListener(server: server, exchanges: exchanges)
        }
    }
}
