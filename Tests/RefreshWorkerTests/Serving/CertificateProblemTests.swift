import Base
import Telemetry
import Testing

@testable import RefreshWorker

@Suite("The dates of the internal listener's certificate")
struct CertificateProblemTests {
    private static let start = Timestamp(secondsSince1970: 1_800_000_000)
    private static let day: Int64 = 86_400

    /// Days of life, days since its beginning, and the expected alarm.
    @Test(
        "raise an alarm in the last 14 days, or in the last quarter of a short lifetime",
        arguments: [
            (90, 0, nil), (90, 75, nil), (90, 76, .certificateExpiring), (90, 89, .certificateExpiring),
            (90, 90, .certificateExpired), (90, 400, .certificateExpired), (90, -1, .certificateNotYetValid),
            (365, 350, nil), (365, 351, .certificateExpiring), (8, 5, nil), (8, 6, .certificateExpiring),
        ] as [(Int64, Int64, AlarmKind?)]
    )
    func problem(life: Int64, age: Int64, kind: AlarmKind?) throws {
        let problem = CertificateMonitor.problem(
            in: "/etc/c.pem",
            validFrom: Self.start,
            expiresAt: Self.start + .seconds(life * Self.day),
            at: Self.start + .seconds(age * Self.day)
        )
        #expect(problem?.kind == kind)
        guard let problem else { return }
        #expect(problem.text.hasPrefix("/etc/c.pem "))
    }
}
