import Testing

@testable import WorkerLifecycle

@Suite("Room for connections")
struct ConnectionRoomTests {
    @Test(
        "public clients and services leave enough descriptors for the worker",
        arguments: [192, 256, 1024, 4096, 20_000]
    )
    func roomIsLeft(openFiles: Int) {
        let room = ConnectionLimits(openFiles: openFiles)
        #expect(room.ofStrangers >= 16 && room.ofServices >= 16)
        #expect(openFiles - room.ofStrangers - room.ofServices >= 128)
    }

    @Test("a listener's connections are bounded, however many descriptors are allowed", arguments: [65_536, Int.max])
    func isBounded(openFiles: Int) {
        let room = ConnectionLimits(openFiles: openFiles)
        #expect(room.ofStrangers == 20_000)
        #expect(room.ofServices == 4096)
    }
}
