import Base
import Worker

/// The checks of the clocks, which do not need the network.
extension Doctor {
    /// The years 2025 to 2099: the program is not older, and is not expected to run later.
    private static let plausibleYears =
        Timestamp(secondsSince1970: 1_735_689_600)..<Timestamp(secondsSince1970: 4_102_444_800)
    /// The tolerated difference between two clocks.
    ///
    /// With a larger one, expired tokens count as valid or valid ones as expired.
    static let tolerableSkew: Duration = .seconds(60)
    private static let bootIDFile = "/proc/sys/kernel/random/boot_id"

    func clockDiagnoses() async throws -> [Diagnosis] {
        let lastWrite = try await BlockingCallQueue.files.run { try lastWriteTime() }
        return [Self.checkClock(now: context.time.now, lastWrite: lastWrite), bootDiagnosis]
    }

    /// Checks the wall clock alone and against the last write: a file cannot have been written in the future.
    static func checkClock(now: Timestamp, lastWrite: Timestamp?) -> Diagnosis {
        let subject = "clock"
        let advice = "set it, and synchronize it by NTP (timedatectl set-ntp true)"
        guard plausibleYears.contains(now) else {
            return .fault(subject, "the clock says \(now.iso8601Seconds)", advice: advice)
        }
        if let lastWrite, lastWrite - now > tolerableSkew {
            return .warning(
                subject,
                """
                the clock says \(now.iso8601Seconds), but the database was written at \(lastWrite.iso8601Seconds): it was \
                ahead then or is behind now
                """,
                advice: advice
            )
        }
        return .ok(subject, now.iso8601Seconds)
    }

    /// The time of the last write to the database or its log.
    private func lastWriteTime() throws -> Timestamp? {
        guard let path = context.configuration.database.file else { return nil }
        return try [path, path + "-wal"].compactMap { try FileStatus.of($0)?.modifiedAt }.max()
    }

    private var bootDiagnosis: Diagnosis {
        let subject = "boot id"
        do throws(InputError) {
            let id = try context.inputs.files.read(Self.bootIDFile)
            guard id.count > 1 else { return .fault(subject, "\(Self.bootIDFile) is empty", advice: "mount /proc") }
            return .ok(subject, "can be read; leases use it")
        } catch {
            return .fault(subject, "\(Self.bootIDFile) \(error.message), and leases use it", advice: "mount /proc")
        }
    }
}

extension Timestamp {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Parses the instant of a `Date` header, in the only form that servers send: `Sun, 06 Nov 1994 08:49:37 GMT`
    /// (https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7).
    init?(httpDate header: String) {
        let words = header.split(separator: " ")
        guard words.count == 6, words[5] == "GMT", let month = Self.months.firstIndex(where: { $0 == words[2] }),
            let day = Self.number(words[1], digits: 2, in: 1...31),
            let year = Self.number(words[3], digits: 4, in: 1970...9999),
            let days = Timestamp.days(toYear: year, month: Int64(month) + 1, day: day)
        else { return nil }
        let parts = words[4].split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, let hour = Self.number(parts[0], digits: 2, in: 0...23),
            let minute = Self.number(parts[1], digits: 2, in: 0...59),
            let second = Self.number(parts[2], digits: 2, in: 0...60)
        else { return nil }
        self.init(secondsSince1970: days * 86_400 + hour * 3600 + minute * 60 + second)
    }

    private static func number(_ text: Substring, digits: Int, in range: ClosedRange<Int64>) -> Int64? {
        guard text.utf8.count == digits, let number = Int64(text), range.contains(number) else { return nil }
        return number
    }
}
