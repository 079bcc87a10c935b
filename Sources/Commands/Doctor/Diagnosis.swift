import Base
import Worker

/// The result of one check of `doctor`, and how to fix the problem.
struct Diagnosis: Equatable, Sendable {
    enum Severity: String, Sendable {
        case ok
        /// It works, but a person should read it.
        case warning
        /// The worker cannot work, or not safely.
        case fault
    }

    let severity: Severity
    let subject: String
    /// The result of the check.
    let finding: String
    /// The advice, or `nil` if the check is ok, or if the finding says it already.
    var advice: String?
    /// `true` if the cause may be the network or the remote server.
    var isAboutEndpoint = false

    static func ok(_ subject: String, _ finding: String) -> Diagnosis {
        Diagnosis(severity: .ok, subject: subject, finding: finding)
    }

    static func warning(_ subject: String, _ finding: String, advice: String? = nil) -> Diagnosis {
        Diagnosis(severity: .warning, subject: subject, finding: finding, advice: advice)
    }

    static func fault(
        _ subject: String,
        _ finding: String,
        advice: String? = nil,
        isAboutEndpoint: Bool = false
    ) -> Diagnosis {
        var diagnosis = Diagnosis(severity: .fault, subject: subject, finding: finding, advice: advice)
        diagnosis.isAboutEndpoint = isAboutEndpoint
        return diagnosis
    }
}

extension Diagnosis {
    /// The width of the column of subjects.
    private static let column = 22

    /// The finding and the advice, for people.
    var text: String { finding + (advice.map { ": \($0)" } ?? "") }

    /// The check as one line, even if the text has several.
    func line(isColoured: Bool) -> String {
        // The colours are green, yellow and red (https://man7.org/linux/man-pages/man4/console_codes.4.html).
        let (label, colour) =
            switch severity {
            case .ok: ("ok", 32)
            case .warning: ("WARN", 33)
            case .fault: ("FAULT", 31)
            }
        let shown = isColoured ? "\u{1b}[\(colour)m\(label)\u{1b}[0m" : label
        let oneLine = text.split(whereSeparator: \.isNewline).joined(separator: "; ")
        let gap = String(repeating: " ", count: 7 - label.count)
        return "\(shown)\(gap)\(subject.padding(to: Self.column))\(oneLine)"
    }

    /// The exit code of `doctor`.
    ///
    /// Faults of endpoints alone may be temporary, so they have a code of their own.
    static func exitCode(of diagnoses: [Diagnosis]) -> ExitCode {
        let faults = diagnoses.filter { $0.severity == .fault }
        if faults.isEmpty { return .success }
        return faults.allSatisfy(\.isAboutEndpoint) ? .googleUnreachable : .configuration
    }

    /// Adds all checks for programs.
    static func write(_ diagnoses: [Diagnosis], to line: inout JSONLine) {
        line.field("faults", diagnoses.count { $0.severity == .fault })
        line.field("warnings", diagnoses.count { $0.severity == .warning })
        line.objects("checks", diagnoses) { diagnosis, object in
            object.field("name", diagnosis.subject)
            object.field("result", diagnosis.severity.rawValue)
            object.field("text", diagnosis.finding)
            object.fieldOrNull("advice", diagnosis.advice)
        }
    }

    static func summary(of diagnoses: [Diagnosis]) -> String {
        let faults = diagnoses.count { $0.severity == .fault }
        let warnings = diagnoses.count { $0.severity == .warning }
        guard faults + warnings > 0 else { return "all \(diagnoses.count) checks are ok" }
        return "\(diagnoses.count) checks, \(faults) with a fault, \(warnings) with a warning"
    }
}
