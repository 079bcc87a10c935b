import Crypto
import Storage

extension Grant {
    /// `true` if the key ring opens every token of the grant, or the grant has none.
    func opens(with vault: TokenVault) throws(CryptoError) -> Bool {
        do throws(CryptoError) {
            if let refreshToken {
                _ = try vault.open(refreshToken: refreshToken, for: id)
                _ = try vault.bindingKey(of: refreshToken)
            }
            _ = try vault.openAccessToken(of: self)
            return true
        } catch {
            guard error.isOfOneValue else { throw error }
            return false
        }
    }
}
