import Testing

@testable import RefreshWorker

@Suite("The limits of connections")
struct ConnectionLimitsTests {
    @Test(
        "public clients and services leave enough descriptors for the worker",
        arguments: [192, 256, 1024, 4096, 20_000]
    )
    func leavesDescriptors(openFiles: Int) {
        let limits = HTTPListeners.connectionLimits(openFiles: openFiles)
        #expect(limits.ofPublic >= 16 && limits.ofInternal >= 16)
        #expect(openFiles - limits.ofPublic - limits.ofInternal >= 128)
    }

    @Test("a listener's connections are bounded, however many descriptors are allowed", arguments: [65_536, Int.max])
    func isBounded(openFiles: Int) {
        let limits = HTTPListeners.connectionLimits(openFiles: openFiles)
        #expect(limits.ofPublic == 20_000)
        #expect(limits.ofInternal == 4096)
    }
}
