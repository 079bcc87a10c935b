import Base
import Crypto
import Foundation
import HTTPServer
import Scheduler
import Telemetry
import TestSupport
import Testing

@testable import RefreshWorker

@Suite(
    "Alarms about the internal listener's certificate",
    .enabled(if: Tool.openssl.isInstalled, "openssl is not installed")
)
struct CertificateMonitorTests {
    @Test("end when a renewed certificate is loaded, and follow the certificate's age")
    func renewal() throws {
        let authority = try TestAuthority()
        defer { authority.remove() }
        try authority.issue("old", for: "IP:127.0.0.1", days: 2)
        try authority.issue("new", for: "IP:127.0.0.1", days: 4)
        let (old, new) = (try read("old", of: authority), try read("new", of: authority))
        let time = ManualTime()
        time.advance(by: old.validFrom - time.now - .seconds(1))
        let log = EngineLog(
            metrics: MetricsLog(sink: nil, worker: "w", time: time),
            diagnostics: DiagnosticLog(level: .error, time: time, descriptor: -1),
            counters: EventCounters(time: time),
            time: time
        )
        let monitor = CertificateMonitor(certificate: Shared(old), path: "/c.pem", log: log, time: time)
        func kinds() -> [AlarmKind] {
            monitor.check()
            return log.currentAlarms.map(\.kind)
        }
        #expect(kinds() == [.certificateNotYetValid])
        time.advance(by: .seconds(1))
        #expect(kinds() == [])
        time.advance(by: .seconds(40 * 3600))
        #expect(kinds() == [.certificateExpiring])
        time.advance(by: .seconds(8 * 3600))
        #expect(kinds() == [.certificateExpired])
        monitor.replace(with: new)
        #expect(log.currentAlarms == [], "the handshake verifies again")
    }

    private func read(_ name: String, of authority: TestAuthority) throws -> ServerCertificate {
        try ServerCertificate(
            chain: Array(Data(contentsOf: URL(filePath: authority.path("\(name).pem")))),
            key: Secret(utf8: Data(contentsOf: URL(filePath: authority.path("\(name).key"))))
        )
    }
}
