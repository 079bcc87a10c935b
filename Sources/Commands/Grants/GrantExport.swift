import Base
import Crypto
import Storage
import Worker

/// One page of an export, in plain text.
struct GrantExport: Sendable {
    /// One line for each grant that can be opened.
    private(set) var text = ""
    /// One line for each grant that cannot be opened.
    private(set) var problems: [String] = []

    init(page: [Grant], vault: TokenVault) {
        for grant in page {
            do throws(SealError) {
                text += try GrantDocument.exported(grant, from: vault).text + "\n"
            } catch {
                problems.append("user \(DisplayedText(grant.userID)): a stored token cannot be opened: \(error)")
            }
        }
    }
}
