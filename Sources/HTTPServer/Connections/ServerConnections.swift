internal import Base
private import Dispatch
private import Synchronization

/// All open connections.
///
/// It limits their number per address, and ends those of clients that have taken too long.
final class ServerConnections: Sendable {
    private struct State {
        var open: [ObjectIdentifier: ServerConnection] = [:]
        var countPerBlock: [NetworkAddress: Int] = [:]
        var isMonitored = false
    }

    private let maximum: Int
    private let maximumPerAddress: Int?
    private let deadlines: ConnectionDeadlines
    private let trustedProxies: TrustedProxies
    private let time: any TimeSource
    private let monitorQueue = DispatchQueue(label: "http-server.clients")
    private let state = Mutex(State())

    init(configuration: HTTPServer.Configuration, time: any TimeSource) {
        maximum = configuration.maximumConnections
        maximumPerAddress = configuration.maximumConnectionsPerAddress
        deadlines = configuration.deadlines
        trustedProxies = configuration.trustedProxies
        self.time = time
    }

    /// Open connections.
    var count: Int { state.withLock { $0.open.count } }

    /// The current activity of each client.
    var kinds: [ConnectionPhase.Kind] { state.withLock { $0.open.values.map(\.kind) } }

    /// Returns `true` if the address can open another connection.
    ///
    /// A trusted proxy always can, because it serves many clients.
    func admits(_ network: NetworkAddress?) -> Bool {
        guard let network, let maximumPerAddress, !trustedProxies.contains(network) else { return true }
        return state.withLock { $0.countPerBlock[network.limitBlock, default: 0] < maximumPerAddress }
    }

    func connected(descriptor: Int32, network: NetworkAddress?, certificate: ServerCertificate?) -> ServerConnection {
        let client = ServerConnection(
            descriptor: descriptor,
            network: network,
            isTrustedProxy: network.map(trustedProxies.contains) ?? false,
            certificate: certificate,
            at: time.sinceBoot
        )
        state.withLock { state in
            state.open[ObjectIdentifier(client)] = client
            if let network { state.countPerBlock[network.limitBlock, default: 0] += 1 }
        }
        return client
    }

    func disconnected(_ client: ServerConnection) {
        client.disconnected()
        state.withLock { state in
            state.open[ObjectIdentifier(client)] = nil
            guard let block = client.network?.limitBlock else { return }
            let remaining = state.countPerBlock[block, default: 1] - 1
            state.countPerBlock[block] = remaining > 0 ? remaining : nil
        }
    }

    /// Checks every client once a second, until ``stopMonitoring()``.
    func startMonitoring() {
        state.withLock { $0.isMonitored = true }
        scheduleCheck()
    }

    func stopMonitoring() {
        state.withLock { $0.isMonitored = false }
    }

    private func scheduleCheck() {
        monitorQueue.asyncAfter(deadline: .now() + 1) { [self] in
            guard state.withLock({ $0.isMonitored }) else { return }
            checkAll()
            scheduleCheck()
        }
    }

    /// Ends the connections of the clients that have taken too long.
    func checkAll() {
        let clients = state.withLock { Array($0.open.values) }
        let now = time.sinceBoot
        let idle = deadlines.idle(open: clients.count, of: maximum)
        for client in clients { client.check(at: now, deadlines: deadlines, idle: idle) }
    }
}
