"""The works that describe the methods, in full, as a paper would list them."""

ZINIEL_2015 = (
    "Ziniel J, Schniter P, Sederberg P (2015). Binary linear classification and feature selection via "
    "generalized approximate message passing. IEEE Transactions on Signal Processing 63(8), 2020–2032. "
    "doi:10.1109/TSP.2015.2407311"
)
RANGAN_2019 = (
    "Rangan S, Schniter P, Fletcher AK (2019). Vector approximate message passing. IEEE Transactions on "
    "Information Theory 65(10), 6664–6684. doi:10.1109/TIT.2019.2916359"
)
MENG_2016 = (
    "Meng X, Wu S, Kuang L, Huang D, Lu J (2016). Approximate message passing with nearest neighbor sparsity "
    "pattern learning. arXiv:1601.00543"
)
BECKER_2011 = (
    "Becker SR, Candès EJ, Grant MC (2011). Templates for convex cone problems with applications to sparse "
    "signal recovery. Mathematical Programming Computation 3, 165–218. doi:10.1007/s12532-011-0029-5"
)
PLAN_2013 = (
    "Plan Y, Vershynin R (2013). Robust 1-bit compressed sensing and sparse logistic regression: a convex "
    "programming approach. IEEE Transactions on Information Theory 59(1), 482–494. "
    "doi:10.1109/TIT.2012.2207945"
)
FAN_2008 = (
    "Fan RE, Chang KW, Hsieh CJ, Wang XR, Lin CJ (2008). LIBLINEAR: a library for large linear "
    "classification. Journal of Machine Learning Research 9, 1871–1874."
)
CORTES_1995 = (
    "Cortes C, Vapnik V (1995). Support-vector networks. Machine Learning 20, 273–297. doi:10.1007/BF00994018"
)
PEDREGOSA_2011 = (
    "Pedregosa F, Varoquaux G, Gramfort A, et al. (2011). Scikit-learn: machine learning in Python. Journal "
    "of Machine Learning Research 12, 2825–2830."
)
HOERL_1970 = (
    "Hoerl AE, Kennard RW (1970). Ridge regression: biased estimation for nonorthogonal problems. "
    "Technometrics 12(1), 55–67. doi:10.1080/00401706.1970.10488634"
)
LEDOIT_2004 = (
    "Ledoit O, Wolf M (2004). A well-conditioned estimator for large-dimensional covariance matrices. "
    "Journal of Multivariate Analysis 88(2), 365–411. doi:10.1016/S0047-259X(03)00096-4"
)
